// The part of the types of Preact's hooks that the page uses.
export function useState<T>(first: T | (() => T)): [T, (next: T | ((before: T) => T)) => void];
export function useEffect(effect: () => void | (() => void), inputs?: readonly unknown[]): void;
export function useLayoutEffect(effect: () => void | (() => void), inputs?: readonly unknown[]): void;
export function useMemo<T>(make: () => T, inputs: readonly unknown[]): T;
export function useRef<T>(first: T): { current: T };
export function useRef<T>(first: T | null): { current: T | null };
export function useCallback<T>(callback: T, inputs: readonly unknown[]): T;
export function useReducer<S, A>(step: (state: S, action: A) => S, first: S): [S, (action: A) => void];
export function useId(): string;
