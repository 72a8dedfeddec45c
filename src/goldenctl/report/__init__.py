"""What people look at: the HTML report and Markdown for a pull request."""
