"""Where applications keep their stores and offsets."""
