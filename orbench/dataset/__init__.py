"""From moderated prompts to the three datasets: joining, selection, quality, audit, card."""
