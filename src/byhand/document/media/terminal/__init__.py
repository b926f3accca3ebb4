"""Parts as text for a terminal of a given width; readable without colour."""
