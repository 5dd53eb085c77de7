"""Tables and numbers as people read them: text, HTML, Markdown; what is in them is not known."""
