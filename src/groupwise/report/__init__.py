"""Tables, figures and pages from plain figures: what they look like, not where they come from."""
