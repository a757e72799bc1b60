/**
 * Mermaid's own parser without a browser: the diagram's states and arrows as mermaid reads them.
 *
 * Mermaid sanitises labels with DOMPurify, which needs a DOM. Nothing is rendered here, so its part is played by functions
 * that leave text as it is.
 */
import DOMPurify from 'dompurify'

/** A state diagram as mermaid reads it. */
export interface ParsedDiagram {
  readonly nodes: readonly { readonly id: string; readonly parentId?: string }[]
  readonly edges: readonly { readonly start: string; readonly end: string; readonly label?: string }[]
}

/** @throws what mermaid says when the text is no diagram */
export async function parseStateDiagram(text: string): Promise<ParsedDiagram> {
  Object.assign(DOMPurify, { addHook: () => undefined, sanitize: (label: string) => label })
  const { default: mermaid } = await import('mermaid')
  const { diagramType } = await mermaid.parse(text)
  if (diagramType !== 'stateDiagram') throw new Error(`mermaid takes it for a ${diagramType}`)
  // Deprecated for those who want a picture; there is no other way to what was read.
  // eslint-disable-next-line @typescript-eslint/no-deprecated
  const { db } = await mermaid.mermaidAPI.getDiagramFromText(text)
  return (db as unknown as { getData(): ParsedDiagram }).getData()
}
