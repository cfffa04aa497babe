"""The webhook's certificates: issued, renewed and handed to the API server without a person."""
