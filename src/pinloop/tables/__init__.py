"""Tables and numbers as people read them: values, and how they become text, HTML and Markdown."""
