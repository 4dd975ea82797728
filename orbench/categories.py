"""The ten categories of toxic prompts (OR-Bench, section 3.2)."""

CATEGORIES = (
    "deception",
    "harassment",
    "harmful",
    "hate",
    "illegal",
    "privacy",
    "self-harm",
    "sexual",
    "unethical",
    "violence",
)
NO_CATEGORY = "none"
