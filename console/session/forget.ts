/** Empties the field of a form that has a secret. After `form.reset()`, React would still remember its value. */
export function forget(form: HTMLFormElement, name: string): void {
  const field = form.elements.namedItem(name);
  if (field instanceof HTMLInputElement) field.value = "";
}
