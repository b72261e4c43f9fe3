"""Networks of the templates: ResNet in PyTorch and in Keras, or one of the user's own."""
