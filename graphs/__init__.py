"""LangGraph wiring: one graph per input, nothing but the order in which agents are asked."""
