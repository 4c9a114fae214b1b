import { Button, CloseButton, Group, Pill, Text, TextInput } from "@mantine/core";
import { useHotkeys } from "@mantine/hooks";
import { type FormEvent, useRef } from "react";
import { filterBar } from "../texts/filter-bar.ts";
import { useTexts } from "../texts/language.tsx";

interface Props {
  /** Parts that all must hold, each an AIP-160 expression. The URL has them. */
  readonly filter: readonly string[];
  readonly onChange: (filter: readonly string[]) => void;
  readonly search: string;
  readonly searchHint: string;
  /** Returns the expression that finds what people type into the search. */
  readonly searchFilter: (text: string) => string;
  readonly filterHint: string;
  readonly suggested: readonly (readonly [label: string, expression: string])[];
}

/** Returns the parts of a filter as one expression. */
export function joinFilter(filter: readonly string[]): string {
  return filter.map((part) => `(${part})`).join(" AND ");
}

/** The filter of a list: a search, an expression, suggestions, and the parts that apply. */
export function FilterBar({ filter, onChange, search, searchHint, searchFilter, filterHint, suggested }: Props) {
  const t = useTexts(filterBar);
  const searchInput = useRef<HTMLInputElement>(null);
  useHotkeys([["/", () => searchInput.current?.focus()]]);
  const add = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    const form = event.currentTarget;
    const { text = "", expression = "" } = Object.fromEntries(new FormData(form)) as Record<string, string>;
    const added = [text.trim() === "" ? [] : searchFilter(text.trim()), expression.trim() || []].flat();
    form.reset();
    onChange([...new Set([...filter, ...added])]);
  };
  const remove = (part: string) => onChange(filter.filter((one) => one !== part));
  return (
    <search>
      <form onSubmit={add}>
        <Group align="end" gap="xs">
          <TextInput ref={searchInput} name="text" label={search} placeholder={searchHint} flex="1 1 16rem" />
          <TextInput
            name="expression"
            label={t.filter}
            placeholder={filterHint}
            flex="1 1 16rem"
            classNames={{ input: "monospace" }}
          />
          <Button type="submit" variant="default">
            {t.add}
          </Button>
        </Group>
        <Group mt="xs" gap="xs" role="group" aria-label={t.suggested}>
          {suggested.map(([label, part]) => (
            <Button
              key={part}
              size="compact-xs"
              variant="default"
              aria-pressed={filter.includes(part)}
              onClick={() => (filter.includes(part) ? remove(part) : onChange([...filter, part]))}
            >
              {label}
            </Button>
          ))}
        </Group>
        {filter.length > 0 && (
          <Group mt="xs" gap="xs">
            {filter.map((part) => (
              <Pill key={part} size="md" maw="100%">
                <Text span ff="monospace" size="sm">
                  {part}
                </Text>
                <CloseButton size="xs" aria-label={t.remove(part)} onClick={() => remove(part)} />
              </Pill>
            ))}
            <Button size="compact-xs" variant="subtle" onClick={() => onChange([])}>
              {t.clear}
            </Button>
          </Group>
        )}
      </form>
    </search>
  );
}
