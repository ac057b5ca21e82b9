"""The routes of Azure AI Personalizer, 1.0 and 1.1-preview, for its own clients."""
