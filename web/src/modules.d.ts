declare module "*.css";
declare module "go-wasm-exec";
