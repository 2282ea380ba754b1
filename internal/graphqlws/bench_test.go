package graphqlws_test

const childVariable = "GRAPHQLWS_CHILD"

func serveChild() int { return 1 }
