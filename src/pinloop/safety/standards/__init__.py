"""What ISO 10218-1, ISO 13855 and ISO/TS 15066 ask for, from stops that are made elsewhere."""
