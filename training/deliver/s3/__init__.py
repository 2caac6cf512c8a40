"""To S3 and what speaks its protocol: objects verified by their SHA-256, resumable part by part. See send."""
