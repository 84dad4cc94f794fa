"""The vertex pipe memory and its access modes."""
