import { createRoot } from "react-dom/client";
import { Join } from "./Join";

createRoot(document.querySelector("main")!).render(<Join url={new URLSearchParams(location.search).get("coordinator")!} trustLocal />);
