"""What a job left behind that tells why it ended: its log, its stacks, the kernel's words, the memory's accounts."""
