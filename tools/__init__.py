"""Programs that make the documentation and measure the source: tables, pictures, pages."""
