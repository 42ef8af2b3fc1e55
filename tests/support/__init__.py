"""What the tests share: real servers, a real application, and readers that do not use snapstore."""
