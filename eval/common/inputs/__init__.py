"""Files that protocols read: records, tables, pairs of folders, images; whole, or refused with all errors."""
