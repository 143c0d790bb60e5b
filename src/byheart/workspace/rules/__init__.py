"""Which files are left out?"""
