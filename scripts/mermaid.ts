/**
 * Runs mermaid's parser without a browser. It returns the states and arrows of a diagram as mermaid reads them.
 *
 * Mermaid cleans labels with DOMPurify, which needs a DOM. This replaces it by functions that return their text unchanged, which is safe because nothing
 * is rendered.
 */
import DOMPurify from 'dompurify'

/** A state diagram as mermaid reads it. */
export interface ParsedDiagram {
  readonly nodes: readonly { readonly id: string; readonly parentId?: string }[]
  readonly edges: readonly { readonly start: string; readonly end: string; readonly label?: string }[]
}

/** @throws mermaid's error when the text is not a diagram */
export async function parseStateDiagram(text: string): Promise<ParsedDiagram> {
  Object.assign(DOMPurify, { addHook: () => undefined, sanitize: (label: string) => label })
  const { default: mermaid } = await import('mermaid')
  const { diagramType } = await mermaid.parse(text)
  if (diagramType !== 'stateDiagram') throw new Error(`mermaid reads it as a ${diagramType}`)
  // Deprecated for rendering, but the only access to the parsed diagram.
  // eslint-disable-next-line @typescript-eslint/no-deprecated
  const { db } = await mermaid.mermaidAPI.getDiagramFromText(text)
  return (db as unknown as { getData(): ParsedDiagram }).getData()
}
