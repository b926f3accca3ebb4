"""Real engines, scored: transformers and llama.cpp in many ways, honest and with planted bugs."""
