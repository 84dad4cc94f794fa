"""Resources and what is done to them without drawing."""
