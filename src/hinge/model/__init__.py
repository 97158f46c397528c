"""What a robot is: bodies, joints, frames, and their numbers."""
