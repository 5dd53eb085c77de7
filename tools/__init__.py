"""Programs that make the documentation: tables that are measured, and what the site needs."""
