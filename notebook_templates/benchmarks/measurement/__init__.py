"""What every measurement needs: its result, its nodes, how busy they are, the papers' figures."""
