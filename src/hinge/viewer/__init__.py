"""To look at robots: shapes as triangles, pictures of them, and a studio in the browser."""
