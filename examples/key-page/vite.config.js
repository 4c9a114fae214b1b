// Only in this repository: selects the source of @keyhold/client.
export default { resolve: { conditions: ["keyhold-source", "module", "browser"] } };
