"""The container of captures: an archive or a folder of plain files with a table."""
