"""llama.cpp beside byhand: its own numbers of every step, judged; its converter's files, opened."""
