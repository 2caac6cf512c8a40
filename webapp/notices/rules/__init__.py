"""PURE: readings in, verdicts out. Nothing here touches a row or a clock."""
