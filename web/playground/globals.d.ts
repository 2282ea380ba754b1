// What the packages' scripts bring; they are no modules.

declare const React: { createElement(type: unknown, props: object): unknown };

declare const ReactDOM: {
  createRoot(element: HTMLElement): { render(node: unknown): void; unmount(): void };
};

interface FetcherParams { query: string; operationName?: string | null; variables?: unknown }
interface FetcherOptions { headers?: Record<string, string>; documentAST?: unknown }

interface OperationNode { kind: string; name?: { value: string } }

declare const GraphiQL: {
  createFetcher(options: object): (params: FetcherParams, options: FetcherOptions) => Promise<any>;
  GraphQL: { parse(text: string): { definitions: OperationNode[] } };
};
