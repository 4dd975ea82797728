"""Result files into rates, comparisons, tables, pictures and a page. `load` comes first."""
