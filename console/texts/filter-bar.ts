import { catalogue } from "./catalogue.ts";

/** Texts of the filters above a list. */
export const filterBar = catalogue({
  en: {
    filter: "Filter",
    add: "Add",
    clear: "Clear all filters",
    remove: (filter: string) => `Remove the filter ${filter}`,
    suggested: "Suggested filters",
  },
  de: {
    filter: "Filter",
    add: "Hinzufügen",
    clear: "Alle Filter entfernen",
    remove: (filter: string) => `Den Filter ${filter} entfernen`,
    suggested: "Vorgeschlagene Filter",
  },
});
