"""To a repository of the Hugging Face Hub, or of what speaks its protocol. See send."""
