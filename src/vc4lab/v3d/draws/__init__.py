"""From render states to pipelines, and the frame that draws them."""
