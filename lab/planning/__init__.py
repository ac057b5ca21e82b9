"""What a load needs: by arithmetic from measured costs, and by simulation."""
