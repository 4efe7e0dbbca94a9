/** What listens: a function, or an object with handleEvent. */
export type Listener<E> = ((event: E) => void) | { handleEvent(event: E): void };

/** An EventTarget whose events have the types of Events. */
export interface TypedTarget<Events> {
  addEventListener<K extends keyof Events & string>(type: K, listener: Listener<Events[K]> | null, options?: AddEventListenerOptions | boolean): void;
  removeEventListener<K extends keyof Events & string>(type: K, listener: Listener<Events[K]> | null, options?: EventListenerOptions | boolean): void;
  dispatchEvent(event: Events[keyof Events]): boolean;
}

/** EventTarget itself, with those types. */
export const typedTarget = <Events>() => EventTarget as unknown as new () => TypedTarget<Events>;
