"""Models answer prompts, in turn, with what they say told as it comes."""
