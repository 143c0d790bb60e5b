"""What is the text of a file?"""
