"""ImageNet's validation images, and pretrained networks from files, as the papers measured them."""
