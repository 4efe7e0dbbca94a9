import { mount } from "svelte";
import Join from "./Join.svelte";

mount(Join, { target: document.querySelector("main")!, props: { url: new URLSearchParams(location.search).get("coordinator")!, trustLocal: true } });
