"""The paper's experiments: its protocol, its tables and figures, next to what was published."""
