"""The SD controllers and the card; `media/` holds its blocks."""
