"""The verbs: each plans with a pure function and carries the plan out."""
