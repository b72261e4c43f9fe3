"""What is made of the answers: values in, findings out."""
