package edge

// lockPart is for caches, which a browser has none of here.
func lockPart(string) (unlock func(), ok bool) { return nil, false }
