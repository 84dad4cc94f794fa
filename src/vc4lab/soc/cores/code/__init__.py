"""The pages of code that a core executes: searched, trapped, counted, checked for writes."""
