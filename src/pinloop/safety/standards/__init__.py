"""What standards ask for (ISO 10218-1, ISO 13855, ISO/TS 15066), and published stops."""
